// Runs commands with `--json`, and checks their output against the OpenAPI document of an installation.
import type { Test } from 'tap'
import { documentedBodies } from './documented-bodies.ts'
import { jsonLines, type cliOf, type RunOptions } from './run-cli.ts'

/** Reads the document of an installation. @param controlUrl the address of its control plane */
export async function readDocument(controlUrl: string): Promise<Parameters<typeof documentedBodies>[0]> {
  return (await (await fetch(`${controlUrl}/openapi.json`)).json()) as Parameters<typeof documentedBodies>[0]
}

/** Returns a function that runs a command and checks its output. */
export function documentedRuns(
  cli: ReturnType<typeof cliOf>,
  document: Parameters<typeof documentedBodies>[0],
): (t: Test, call: string, args: string[], list?: string, options?: RunOptions) => Promise<Record<string, unknown>[]> {
  const errorsOf = documentedBodies(document)
  /**
   * Checks that a command prints what the response of a call is documented to be. @returns the objects of the output
   * @param list the member of the response whose items the command prints, one in each line
   */
  return async (t, call, args, list, options) => {
    const ran = await cli([...args, '--json'], options)
    t.equal(ran.code, 0, `${args.join(' ')}: ${ran.stderr}`)
    const rows = jsonLines(ran)
    for (const row of rows) t.same(errorsOf(call, row, list), [], `${args.join(' ')} is as ${call} documents it`)
    if (list === undefined) t.equal(rows.length, 1, `${args.join(' ')} prints one object`)
    return rows
  }
}
