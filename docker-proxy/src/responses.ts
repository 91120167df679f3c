// What the caller may read of the Engine's answers: all of what is ours; of the rest that it exists, and nothing else. Pure.
import { componentLabel, isOwned } from '../../control-plane/src/engines/index.ts'
import { asObject, isNamesake, labelsOf, nameOf, type Account } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'

/** The Engine's answer → the caller's. */
export type Shown = (response: unknown, rules: ProxyRules) => unknown

/** Fields of a JSON object and no others. */
export const only =
  (...names: readonly string[]): Shown =>
  (response) =>
    picked(asObject(response), names)

/** What an image is: of its labels only the one that says which component. */
export const imageInShort: Shown = (response) => {
  const account = asObject(response)
  const labels = asObject(asObject(account['Config'])['Labels'])
  return { ...picked(account, ['Id']), Config: { Labels: picked(labels, [componentLabel]) } }
}

export const ownContainer: Shown = (response, rules) => {
  const account = asObject(response)
  if (isOwned(labelsOf('container', account), rules)) return response
  const networks = rules.attachedContainers.includes(nameOf(account))
    ? asObject(account['NetworkSettings'])['Networks']
    : {}
  return { ...picked(account, ['Id', 'Name']), Config: { Labels: {} }, NetworkSettings: { Networks: networks } }
}

/** The callers ask for a list to know who is there; the rest stands in the inspection of each. */
export const containersInShort: Shown = (response) =>
  listOf(response).map((account) => ({
    ...picked(account, ['Id', 'Names']),
    NetworkSettings: { Networks: asObject(asObject(account['NetworkSettings'])['Networks']) },
  }))

export const ownNetwork: Shown = (response, rules) => {
  const account = asObject(response)
  return isOwned(labelsOf('network', account), rules)
    ? response
    : { ...picked(account, ['Id', 'Name', 'Created']), Labels: {} }
}

export const ownNetworks: Shown = (response, rules) => listOf(response).map((account) => ownNetwork(account, rules))

export const ownVolume: Shown = (response, rules) => {
  const account = asObject(response)
  return isOwned(labelsOf('volume', account), rules) || isNamesake(account)
    ? response
    : { ...picked(account, ['Name']), Labels: {} }
}

export const ownVolumes: Shown = (response, rules) => ({
  Volumes: listOf(asObject(response)['Volumes']).filter(
    (account) => isOwned(labelsOf('volume', account), rules) || isNamesake(account),
  ),
})

/** @returns undefined for an event that is none of the caller's business */
export function ownEvent(event: unknown, rules: ProxyRules): object | undefined {
  const { Type: type, Action: action, Actor: actor, time, timeNano } = asObject(event)
  const { ID: id, Attributes: attributes } = asObject(actor)
  const own = { Type: type, Action: action, time, timeNano }
  // The Engine gives no labels of networks and volumes: the caller asks for them, and is told of its own alone.
  if (type !== 'container') return { ...own, Actor: { ID: id, Attributes: {} } }
  return isOwned(asObject(attributes) as Record<string, string>, rules)
    ? { ...own, Actor: { ID: id, Attributes: attributes } }
    : undefined
}

function listOf(response: unknown): Account[] {
  return Array.isArray(response) ? response.map(asObject) : []
}

function picked(account: Account, names: readonly string[]): Account {
  return Object.fromEntries(names.filter((name) => Object.hasOwn(account, name)).map((name) => [name, account[name]]))
}
