import { open } from 'node:fs/promises'

/** The names of new files in a folder are durable when this resolves. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
