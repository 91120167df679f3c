// How every service stops: at SIGINT or SIGTERM in its own time, at the second one at once.

/** Ends the process when `stop` has; with code 1 when it failed, which `onFailure` is told of. */
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
