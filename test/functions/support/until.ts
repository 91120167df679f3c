// Waits for a state that comes by itself.

export async function until(holds: () => Promise<boolean>, what = 'it did not come to that', milliseconds = 30_000): Promise<void> {
  const deadline = performance.now() + milliseconds
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(what)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
