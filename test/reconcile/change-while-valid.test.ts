// A change of a cluster ends when it is not the right one any more, or when it would end other containers than those it is about.
import t from 'tap'
import type { Step } from '#control-plane/engines/convergence-plan.ts'
import { changeWhileValid, decideNow, type Edge } from '#control-plane/reconcile/change-while-valid.ts'

/** Makes a change in rounds of steps, each of which takes some seconds. */
async function changed(
  rounds: readonly (readonly Step[])[],
  { seconds = 0, decisions = ['a'] },
): Promise<[boolean, Step[]]> {
  let now = 0
  const taken: Step[] = []
  let decided = 0
  const change = {
    decide: () => Promise.resolve(decisions[Math.min(decided++, decisions.length - 1)]),
    mayEnd: new Set(['old']),
    now: () => now,
    edge: () => Promise.resolve(),
  }
  const make = async (edge: Edge) => {
    for (const steps of rounds) {
      await edge('before', steps)
      taken.push(...steps)
      now += seconds * 1000
      await edge('after', steps)
    }
  }
  return [await changeWhileValid(await decideNow(change), change, make), taken]
}

const create: Step = { do: 'create-volume', volume: 'data' }
const end = (container: string): Step => ({ do: 'remove-container', container, seconds: 1 })

t.test('A change is made while it is the right one', async (t) => {
  t.same(await changed([[create], [end('old')]], {}), [true, [create, end('old')]])
  t.same(await changed([[create], [end('old')]], { seconds: 60 }), [true, [create, end('old')]], 'also a slow one')
})

t.test('A slow change ends when another one became the right one', async (t) => {
  t.same(await changed([[create], [end('old')]], { seconds: 60, decisions: ['a', 'b'] }), [false, [create]])
  t.same(
    await changed([[create], [end('old')]], { decisions: ['a', 'b'] }),
    [true, [create, end('old')]],
    'not a fast one',
  )
})

t.test('No container is ended that the change is not about', async (t) => {
  const others: Step[] = [
    end('seen later'),
    { do: 'stop-container', container: 'seen later', seconds: 1 },
    { do: 'take-over', container: 'new', service: 'runtime-1', from: ['old', 'seen later'] },
  ]
  for (const step of others) t.same(await changed([[create], [step]], {}), [false, [create]], step.do)
})

t.test('Other failures are thrown', async (t) => {
  const failure = new Error('the engine failed')
  const change = {
    decide: () => Promise.resolve(1),
    mayEnd: new Set<string>(),
    now: () => 0,
    edge: () => Promise.reject(failure),
  }
  const make = (edge: Edge) => edge('before')
  await t.rejects(changeWhileValid({ decision: 1, at: 0 }, change, make), failure)
})
