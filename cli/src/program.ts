// Assembles all commands, runs one of them and reports its error.
import { ApiError } from '@tenantry/client'
import { Command, CommanderError } from 'commander'
import { addApplyCommand } from './apply/apply.ts'
import { addApiCommand } from './commands/api.ts'
import { addBackupCommands } from './commands/backups.ts'
import { addBillingCommands } from './commands/billing.ts'
import { addDatabaseCommands } from './commands/databases.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addDriftCommands } from './commands/drift.ts'
import { addHostCommands } from './commands/hosts.ts'
import { addInstallationCommands } from './commands/installation.ts'
import { addKeyCommands } from './commands/keys.ts'
import { addLoginCommands } from './commands/login.ts'
import { addObserveCommands } from './commands/observe.ts'
import { addOperationCommands } from './commands/operations.ts'
import { addRolloutCommands } from './commands/rollouts.ts'
import { addTenantCommands } from './commands/tenants.ts'
import { addWebhookCommands } from './commands/webhooks.ts'
import { addCompletionCommand } from './completion/completion-command.ts'
import { complete } from './completion/complete.ts'
import { addFunctionCommands } from './tenant/functions.ts'
import { addLinkCommands } from './tenant/link.ts'
import { addSchemaCommands } from './tenant/schemas.ts'
import { addSqlCommand } from './tenant/sql.ts'
import { addStorageCommands } from './tenant/storage.ts'
import { addTypesCommand } from './tenant/types.ts'
import { exitCodeOf, exitCodes, Interrupted } from './terminal/exit-codes.ts'
import { printable } from './terminal/table.ts'
import type { Terminal } from './terminal/terminal.ts'

/** The first argument of the calls that the completion of shells makes. */
const completionArgument = '__complete'

/** Runs a command. @returns the exit code */
export async function runProgram(args: readonly string[], terminal: Terminal): Promise<number> {
  const isJson = args.includes('--json')
  const program = buildProgram(terminal, isJson)
  try {
    if (args[0] === completionArgument) {
      // The shells put `--` before the words.
      for (const candidate of await complete(program, terminal, args.slice(2))) terminal.stdout.write(`${candidate}\n`)
    } else await program.parseAsync(args, { from: 'user' })
    return exitCodes.success
  } catch (thrown) {
    const error = terminal.signal.aborted && !(thrown instanceof Interrupted) ? new Interrupted() : thrown
    report(error, terminal, isJson)
    return exitCodeOf(error)
  }
}

/** Returns the program with all commands. With `isJson`, commander writes no errors, because they are reported as JSON. */
function buildProgram(terminal: Terminal, isJson: boolean): Command {
  const program = new Command('tenantry')
    .description('Operates an installation of Tenantry, and develops for its tenants.')
    .option('--json', 'print an object, or an object in each line')
    .option('--quiet', 'print no progress')
    .option('--context <name>', 'the installation: a context that `login` has stored')
    .option('--link <name>', 'the tenant: a link that `link` has stored')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => {
        if (!isJson) terminal.stderr.write(text)
      },
    })
    .addHelpText('after', '\nExit codes and examples: docs/command-line.md')
  addLoginCommands(program, terminal)
  addTenantCommands(program, terminal)
  addOperationCommands(program, terminal)
  addObserveCommands(program, terminal)
  addDriftCommands(program, terminal)
  addBillingCommands(program, terminal)
  addBackupCommands(program, terminal)
  addDatabaseCommands(program, terminal)
  addKeyCommands(program, terminal)
  addWebhookCommands(program, terminal)
  addRolloutCommands(program, terminal)
  addInstallationCommands(program, terminal)
  addHostCommands(program, terminal)
  addApiCommand(program, terminal)
  addDoctorCommand(program, terminal)
  addApplyCommand(program, terminal)
  addLinkCommands(program, terminal)
  addSchemaCommands(program, terminal)
  addTypesCommand(program, terminal)
  addFunctionCommands(program, terminal)
  addStorageCommands(program, terminal)
  addSqlCommand(program, terminal)
  addCompletionCommand(program, terminal)
  return program
}

function report(error: unknown, terminal: Terminal, isJson: boolean): void {
  // Commander has already written its help, and its own errors unless they are reported as JSON.
  if (error instanceof CommanderError && (!isJson || error.exitCode === 0)) return
  if (error instanceof Interrupted) {
    terminal.stderr.write(`\n${error.hint === undefined ? '' : `${error.hint}\n`}`)
    return
  }
  const message = messageOf(error)
  if (isJson) {
    const details = error instanceof ApiError ? { status: error.status, code: error.code } : {}
    terminal.stderr.write(`${JSON.stringify({ error: { message, ...details } })}\n`)
  } else {
    const code = error instanceof ApiError ? ` (${error.code})` : ''
    terminal.stderr.write(`tenantry: ${printable(message)}${code}\n`)
  }
}

function messageOf(error: unknown): string {
  if (error instanceof CommanderError)
    return error.code === 'commander.help' ? 'The command needs a subcommand.' : error.message.replace(/^error: /, '')
  return error instanceof Error ? error.message : String(error)
}
