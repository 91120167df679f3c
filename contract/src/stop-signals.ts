// Stops a service at SIGINT or SIGTERM gracefully, and at a second one at once.

/** Ends the process after `stop`, with code 1 if it failed, which `onFailure` reports. */
export function stopOnSignals(stop: () => Promise<void>, onFailure: (error: unknown) => void): void {
  let isRequested = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (isRequested) process.exit(1)
      isRequested = true
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          onFailure(error)
          process.exit(1)
        },
      )
    })
  }
}
