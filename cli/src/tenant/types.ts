// `types` prints TypeScript types of a tenant's tables and functions, in the form that supabase-js accepts.
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { databaseTypes } from './database-types.ts'
import { asObject } from './json.ts'

/** Adds `types`. */
export function addTypesCommand(program: Command, terminal: Terminal): void {
  program
    .command('types')
    .description("print TypeScript types of the tenant's tables, for createClient<Database> of supabase-js")
    .option('-o, --output <file>', 'write them to a file')
    .action(action(terminal, types))
}

async function types(call: Call): Promise<void> {
  const description = asObject(await (await call.tenant()).json('/rest/v1/'), 'The description')
  const text = databaseTypes(description)
  const output = call.text('output')
  if (output === undefined) {
    if (call.output.isJson) call.output.one({ types: text })
    else call.output.text(text)
    return
  }
  await writeFile(call.path(output), text)
  call.output.one({ file: output }, () => `Wrote ${output}.`)
}
