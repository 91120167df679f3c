// Waits for a state instead of a fixed time.

/** Waits until `holds` returns true. @throws Error that names `what` when the time is over */
export async function until(
  holds: () => boolean | Promise<boolean>,
  what = 'the expected state',
  milliseconds = 120_000,
): Promise<void> {
  const deadline = performance.now() + milliseconds
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Timed out after ${milliseconds / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
