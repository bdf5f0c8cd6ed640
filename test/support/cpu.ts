/** The processor's time that this process takes for `work`, in milliseconds: what other programs take meanwhile is not in it. */
export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
