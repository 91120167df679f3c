// A consensus protocol: all participants agree on one text, on a store that only supports put, get and list. Not every S3
// server has conditional writes, and some of those that have them check first and write afterwards.
//
// The protocol runs in rounds. In each round, a participant (1) writes a flag for its text, (2) writes the text as the
// round's first one unless there is one, and (3) lists the flags. If no flag is for another text, its text is decided.
// Otherwise it enters the next round with this round's first text. A participant that enters a decided round finds the
// first text written, because flags are listed only afterwards. It continues with the decided text, so no later round has
// another one. The random pauses only help to terminate: the result is correct for any timing. Flags must not be removed.
import { setTimeout as pause } from 'node:timers/promises'
import { RuntimeError } from '../../errors.ts'

export interface Registers {
  get(name: string): Promise<string | undefined>
  put(name: string, text: string): Promise<void>
  /** Lists the names with a prefix, and returns them without it. */
  names(prefix: string): Promise<string[]>
}

const maxRounds = 40
const minPauseMilliseconds = 50

/** Proposes a text and returns the one that is decided. @throws RuntimeError STORAGE_UNAVAILABLE if none is after `maxRounds` */
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
    await wait(minPauseMilliseconds * (1 + Math.random() * (1 + Math.min(round, 5))))
    text = (await registers.get(first)) ?? text
  }
  throw new RuntimeError('STORAGE_UNAVAILABLE', 'Too many runtimes claim the store at once. Retry the request.')
}
