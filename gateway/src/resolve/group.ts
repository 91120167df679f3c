// Maps a tenant's path to the module that serves it, for metering and for the response timeout.

/** The groups of `CounterKey.group`. */
export type Group = 'storage' | 'rest' | 'functions' | 'other'

/**
 * Returns the group of a path.
 * @param path the path as the runtime receives it
 */
export function groupOf(path: string): Group {
  if (path.startsWith('/storage/')) return 'storage'
  if (path.startsWith('/rest/')) return 'rest'
  if (path.startsWith('/functions/')) return 'functions'
  return 'other'
}
