// Which of the service's areas a tenant's path belongs to: for the meter and for how long an answer may take.

/** As in `CounterKey.group`. */
export type Group = 'storage' | 'rest' | 'functions' | 'other'

/** @param path as the runtime sees it */
export function groupOf(path: string): Group {
  if (path.startsWith('/storage/')) return 'storage'
  if (path.startsWith('/rest/')) return 'rest'
  if (path.startsWith('/functions/')) return 'functions'
  return 'other'
}
