// Waits for a state that comes by itself.

/** @throws Error which says that `what` did not come about in time */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what = 'what was waited for',
  milliseconds = 120_000,
): Promise<void> {
  const deadline = performance.now() + milliseconds
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come about within ${milliseconds / 1000} s`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
