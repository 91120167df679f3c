// One text that everybody who asks agrees upon, on a store that can do no more than put, get and list: not every S3 server
// has conditional writes, and among those that have them some check first and write afterwards.
//
// In rounds. In each, whoever has a text (1) raises a flag for it, (2) writes it as the round's first unless there is one,
// (3) looks at the flags. Flags for no other text: it is the one. Otherwise on to the next round, with the round's first.
// Whoever comes to a round that was decided finds its first written, as flags are looked at only after that; so it goes on
// with the text that was decided, and no round after it has another one. Pauses, of random length, serve only to get there:
// whatever the times are, nobody is told another text. Flags must stay where they are.
import { setTimeout as pause } from 'node:timers/promises'
import { RuntimeError } from '../../errors.ts'

export interface Registers {
  get(name: string): Promise<string | undefined>
  put(name: string, text: string): Promise<void>
  /** Names that begin so, without what they begin with. */
  names(prefix: string): Promise<string[]>
}

const maxRounds = 40
const shortestPause = 50

/** @throws RuntimeError STORAGE_UNAVAILABLE when they don't come to agree */
export async function agree(
  registers: Registers,
  proposal: string,
  wait: (milliseconds: number) => Promise<unknown> = pause,
): Promise<string> {
  let text = proposal
  for (let round = 0; round < maxRounds; round++) {
    const first = `${round}/first`
    await registers.put(`${round}/for/${text}`, text)
    if ((await registers.get(first)) === undefined) await registers.put(first, text)
    if ((await registers.names(`${round}/for/`)).every((other) => other === text)) return text
    await wait(shortestPause * (1 + Math.random() * (1 + Math.min(round, 5))))
    text = (await registers.get(first)) ?? text
  }
  throw new RuntimeError('STORAGE_UNAVAILABLE', 'too many want to begin the store at once; try again')
}
