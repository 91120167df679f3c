// Computes the candidates of a completion from the commands, the stored contexts and the names of tenants.
import { bodyOf, type ControlClient } from '@tenantry/client'
import type { Command, Option } from 'commander'
import { Call } from '../call.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { printable } from '../terminal/table.ts'
import { scripts } from './scripts.ts'

const timeoutMs = 2_000
const maxCandidates = 100

/** The position of the word that is completed. */
interface Position {
  readonly command: Command
  /** Number of arguments of the command before the word. */
  readonly argumentCount: number
  /** The option whose value the word is. */
  readonly option: Option | undefined
  /** The value of `--context`, if it was typed before the word. */
  readonly context: string | undefined
}

/**
 * Returns the candidates for the last word, each followed by a tab and its description. A candidate begins with the word.
 * If something cannot be read, its candidates are missing.
 */
export async function complete(program: Command, terminal: Terminal, words: readonly string[]): Promise<string[]> {
  const word = words.at(-1) ?? ''
  const position = positionOf(program, words.slice(0, -1))
  const candidates = await candidatesAt(program, terminal, position, word)
  return candidates
    .filter(([name]) => name.startsWith(word))
    .map(([name, description]) => `${printable(name)}\t${printable(description)}`)
}

function positionOf(program: Command, words: readonly string[]): Position {
  let command = program
  let argumentCount = 0
  let option: Option | undefined
  let context: string | undefined
  for (const word of words) {
    if (word.startsWith('--context=')) context = word.slice('--context='.length)
    if (option !== undefined) {
      if (option.long === '--context') context = word
      option = undefined
    } else if (word.startsWith('-')) option = word.includes('=') ? undefined : valueOption(program, command, word)
    else {
      const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
      if (next !== undefined) command = next
      else argumentCount++
    }
  }
  return { command, argumentCount, option, context }
}

function valueOption(program: Command, command: Command, word: string): Option | undefined {
  const option = optionsOf(program, command).find(({ short, long }) => short === word || long === word)
  return option?.required === true ? option : undefined
}

function optionsOf(program: Command, command: Command): Option[] {
  return [...new Set([...command.options, ...program.options])]
}

type Candidate = readonly [name: string, description: string]

async function candidatesAt(
  program: Command,
  terminal: Terminal,
  { command, argumentCount, option, context }: Position,
  word: string,
): Promise<readonly Candidate[]> {
  if (option !== undefined) return values(terminal, option.attributeName(), word, context)
  if (word.startsWith('-'))
    return [
      ...optionsOf(program, command).map(({ long, short, description }): Candidate => [
        long ?? short ?? '',
        description,
      ]),
      ['--help', 'display help for the command'],
    ]
  const subcommands = argumentCount > 0 ? [] : command.commands
  const argument = command.registeredArguments[argumentCount]
  return [
    ...subcommands.map((one): Candidate => [one.name(), one.description()]),
    ...(argument === undefined ? [] : await values(terminal, argument.name(), word, context)),
  ]
}

/** Returns the values of an argument or an option by its name. */
async function values(
  terminal: Terminal,
  name: string,
  word: string,
  context: string | undefined,
): Promise<readonly Candidate[]> {
  if (name === 'shell') return Object.keys(scripts).map((shell) => [shell, ''])
  const call = new Call(terminal, { context })
  try {
    if (name === 'context') return Object.entries((await call.config()).contexts).map(([one, { url }]) => [one, url])
    if (name === 'link') return Object.entries((await call.config()).links).map(([one, { url }]) => [one, url])
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    return read === undefined ? [] : await read(await call.control(timeoutMs), word)
  } catch {
    // A completion never reports an error, because its text would appear in the line that the user types.
    return []
  }
}

const readers: Readonly<Record<string, (client: ControlClient, word: string) => Promise<readonly Candidate[]>>> = {
  tenant: async (client, word) => {
    const query = { limit: String(maxCandidates), ...(word === '' ? {} : { name_prefix: word }) }
    const { tenants } = bodyOf(await client.GET('/v1/tenants', { params: { query } }))
    return tenants.map(({ name, status }) => [name, status])
  },
  plan: async (client) => bodyOf(await client.GET('/v1/plans')).plans.map(({ id, isolation }) => [id, isolation]),
  region: async (client) => bodyOf(await client.GET('/v1/regions')).regions.map(({ id, engine }) => [id, engine]),
}
