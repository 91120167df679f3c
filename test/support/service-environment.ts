// The environment that services which tests start have in common with the test.

const compiled = process.env['NODE_COMPILE_CACHE']

/** The path of programs, and the directory of compiled code, with which services start sooner. */
export const inheritedEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }),
}
