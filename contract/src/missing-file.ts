// Whether a read failed because the file does not exist.

/** Whether an error reports that a file or directory does not exist (`ENOENT`). */
export function isMissingFile(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
}
