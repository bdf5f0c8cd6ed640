import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Both ends of one connection within this process: what one writes, the other reads. */
export async function socketPair(): Promise<readonly [near: Socket, far: Socket]> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const accepted = new Promise<Socket>(resolve => server.once('connection', resolve))
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const far = await accepted
  server.close()
  return [near, far]
}
