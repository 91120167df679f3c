// Filters the Engine's responses: own objects are complete, and of foreign objects only the existence is visible. Pure.
import { componentLabel, isOwned } from '../../control-plane/src/engines/index.ts'
import { asObject, isNamesake, labelsOf, nameOf, type Account } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'

/** Converts the Engine's response to the client's. */
export type ResponseFilter = (response: unknown, rules: ProxyRules) => unknown

/** Returns a filter that passes only some fields of a JSON object. */
export const only =
  (...names: readonly string[]): ResponseFilter =>
  (response) =>
    picked(asObject(response), names)

/** Passes an image's ID and component label. */
export const imageSummary: ResponseFilter = (response) => {
  const account = asObject(response)
  const labels = asObject(asObject(account['Config'])['Labels'])
  return { ...picked(account, ['Id']), Config: { Labels: picked(labels, [componentLabel]) } }
}

export const ownContainer: ResponseFilter = (response, rules) => {
  const account = asObject(response)
  if (isOwned(labelsOf('container', account), rules)) return response
  const networks = rules.attachedContainers.includes(nameOf(account))
    ? asObject(account['NetworkSettings'])['Networks']
    : {}
  return { ...picked(account, ['Id', 'Name']), Config: { Labels: {} }, NetworkSettings: { Networks: networks } }
}

/** Passes the IDs, names, states and networks of a list. Clients inspect each container for the rest. */
export const containerSummaries: ResponseFilter = (response) =>
  listOf(response).map((account) => ({
    ...picked(account, ['Id', 'Names', 'State']),
    NetworkSettings: { Networks: asObject(asObject(account['NetworkSettings'])['Networks']) },
  }))

export const ownNetwork: ResponseFilter = (response, rules) => {
  const account = asObject(response)
  return isOwned(labelsOf('network', account), rules)
    ? response
    : { ...picked(account, ['Id', 'Name', 'Created']), Labels: {} }
}

export const ownNetworks: ResponseFilter = (response, rules) =>
  listOf(response).map((account) => ownNetwork(account, rules))

export const ownVolume: ResponseFilter = (response, rules) => {
  const account = asObject(response)
  return isOwned(labelsOf('volume', account), rules) || isNamesake(account)
    ? response
    : { ...picked(account, ['Name']), Labels: {} }
}

export const ownVolumes: ResponseFilter = (response, rules) => ({
  Volumes: listOf(asObject(response)['Volumes']).filter(
    (account) => isOwned(labelsOf('volume', account), rules) || isNamesake(account),
  ),
})

/** Filters an event. @returns undefined for a foreign one */
export function ownEvent(event: unknown, rules: ProxyRules): object | undefined {
  const { Type: type, Action: action, Actor: actor, time, timeNano } = asObject(event)
  const { ID: id, Attributes: attributes } = asObject(actor)
  const own = { Type: type, Action: action, time, timeNano }
  // Events of networks and volumes have no labels. The client inspects the object, and receives only its own.
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
