// The environment that services which tests start have in common with the test.
import { resolve } from 'node:path'

/** The path of programs, and the directory of compiled code. Most of a start is compiling the source, which is the same in all tests. */
export const inheritedEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? resolve('node_modules/.cache/compiled'),
}
