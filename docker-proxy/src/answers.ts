// What the caller may read of the Engine's answers: all of what is ours; of the rest that it exists, and nothing else. Pure.
import { componentLabel, isOwned } from '../../control-plane/src/engines/index.ts'
import { asObject, isNamesake, labelsOf, nameOf, type Account } from './claims.ts'
import type { DoorRules } from './door-rules.ts'

/** The Engine's answer → the caller's. */
export type Shown = (answer: unknown, rules: DoorRules) => unknown

/** Fields of a JSON object and no others. */
export const only =
  (...names: readonly string[]): Shown =>
  (answer) =>
    picked(asObject(answer), names)

/** What an image is: of its labels only the one that says which component. */
export const imageInShort: Shown = (answer) => {
  const account = asObject(answer)
  const labels = asObject(asObject(account['Config'])['Labels'])
  return { ...picked(account, ['Id']), Config: { Labels: picked(labels, [componentLabel]) } }
}

export const ownContainer: Shown = (answer, rules) => {
  const account = asObject(answer)
  if (isOwned(labelsOf('container', account), rules)) return answer
  const networks = rules.guests.includes(nameOf(account)) ? asObject(account['NetworkSettings'])['Networks'] : {}
  return { ...picked(account, ['Id', 'Name']), Config: { Labels: {} }, NetworkSettings: { Networks: networks } }
}

/** The callers ask for a list to know who is there; the rest stands in the inspection of each. */
export const containersInShort: Shown = (answer) =>
  listOf(answer).map((account) => ({
    ...picked(account, ['Id', 'Names']),
    NetworkSettings: { Networks: asObject(asObject(account['NetworkSettings'])['Networks']) },
  }))

export const ownNetwork: Shown = (answer, rules) => {
  const account = asObject(answer)
  return isOwned(labelsOf('network', account), rules)
    ? answer
    : { ...picked(account, ['Id', 'Name', 'Created']), Labels: {} }
}

export const ownNetworks: Shown = (answer, rules) => listOf(answer).map((account) => ownNetwork(account, rules))

export const ownVolume: Shown = (answer, rules) => {
  const account = asObject(answer)
  return isOwned(labelsOf('volume', account), rules) || isNamesake(account)
    ? answer
    : { ...picked(account, ['Name']), Labels: {} }
}

export const ownVolumes: Shown = (answer, rules) => ({
  Volumes: listOf(asObject(answer)['Volumes']).filter(
    (account) => isOwned(labelsOf('volume', account), rules) || isNamesake(account),
  ),
})

/** @returns undefined for an event that is none of the caller's business */
export function ownEvent(event: unknown, rules: DoorRules): object | undefined {
  const { Type: type, Action: action, Actor: actor, time, timeNano } = asObject(event)
  const { ID: id, Attributes: attributes } = asObject(actor)
  const own = { Type: type, Action: action, time, timeNano }
  // The Engine gives no labels of networks and volumes: the caller asks for them, and is told of its own alone.
  if (type !== 'container') return { ...own, Actor: { ID: id, Attributes: {} } }
  return isOwned(asObject(attributes) as Record<string, string>, rules)
    ? { ...own, Actor: { ID: id, Attributes: attributes } }
    : undefined
}

function listOf(answer: unknown): Account[] {
  return Array.isArray(answer) ? answer.map(asObject) : []
}

function picked(account: Account, names: readonly string[]): Account {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(account, name)).map((name) => [name, account[name]]))
}
