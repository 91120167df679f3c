// A configuration with which a part cannot start: one line for the operator, and an exit code that signals a supervisor
// that a restart does not help.
import { writeSync } from 'node:fs'

/** Exit code of a process whose configuration is wrong; EX_CONFIG of sysexits.h. */
export const configurationExitCode = 78

/** A setting, or a file that a setting names, is missing or wrong. Its message is for the operator. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
}

/** Returns the result of `read`. Any error ends the process, as `exitForConfiguration` does. */
export function readOrExit<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    return exitForConfiguration(error instanceof Error ? error.message : String(error))
  }
}

/** Returns the result of `check`. A ConfigurationError ends the process; any other error is thrown. */
export async function checkOrExit<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    return exitForConfiguration(error.message)
  }
}

/** Writes the message as one line to standard error and ends the process with `configurationExitCode`. */
export function exitForConfiguration(message: string): never {
  try {
    writeSync(2, `${message.replaceAll(/\s*[\r\n]+\s*/g, ' ')}\n`)
  } catch {
    // Standard error has no reader. The exit code still signals the error.
  }
  process.exit(configurationExitCode)
}
