// The files that Git tracks, for the checks that read them.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** A tracked file and its content. */
export interface TrackedFile {
  readonly file: string
  readonly source: string
}

/** A folder whose files a program writes. */
const generated = ':!client/src/generated/'

/**
 * Returns the tracked files in the folders (all without any) whose names have one of the endings, such as `ts`, without
 * generated files.
 */
export function readTracked(folders: readonly string[], endings: readonly string[]): TrackedFile[] {
  const paths = folders.length === 0 ? ['.'] : folders
  const files = execFileSync('git', ['ls-files', '-z', '--', ...paths, generated], { encoding: 'utf8' }).split('\0')
  // A file that was removed stays tracked until that is staged.
  return files
    .filter((file) => endings.some((ending) => file.endsWith(`.${ending}`)) && existsSync(file))
    .map((file) => ({ file, source: readFileSync(file, 'utf8') }))
}
