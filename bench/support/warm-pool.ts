// The warm pool of a platform on a Docker Engine.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DockerPlatform } from '#test/support/docker-platform.ts'

/** Waits until the pool has a number of stacks. @throws Error when the time is over */
export async function untilWarm(platform: DockerPlatform, count: number, seconds: number): Promise<void> {
  const deadline = performance.now() + seconds * 1000
  for (;;) {
    const [row] = await platform.sql(
      "select count(*)::int as n from tenants where desired = 'warm' and status = 'warm'",
    )
    if (row?.['n'] === count) return
    if (performance.now() > deadline) throw new Error(`The warm pool did not fill within ${seconds} s`)
    await sleep(200)
  }
}
