// Whether reading failed because there is nothing to read.

/** Reports whether an error says that a file or directory does not exist (`ENOENT`). */
export function isMissingFile(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
}
