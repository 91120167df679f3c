// What a call touches, and what must be true of it before the call goes on. Pure: the Engine's own account is handed in.
import { isOwned, isUnlabelled } from '../../control-plane/src/engines/index.ts'
import { stackOfVolume } from '../../control-plane/src/stacks/index.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { Rejected } from './rejected.ts'

export type Claim =
  | { kind: 'container'; name: string; may: 'be used' | 'start' | 'be attached' | 'hold files' }
  | { kind: 'network'; name: string }
  | { kind: 'volume'; name: string; may?: 'be removed' }
  | { kind: 'image'; name: string }
  /** A command that was made in a container before. */
  | { kind: 'exec'; name: string }
  /** A container on a network, to be shown out of it: one of the two must be ours. */
  | { kind: 'membership'; name: string; container: string }

export type Account = Readonly<Record<string, unknown>>
type DockerLabels = Readonly<Record<string, string>>

/** Containers that files are written through; they never run. */
export const helperSuffix = '-files'

/** @throws Refused unless the Engine's account of the object bears the claim out */
export function checkClaim(
  claim: Exclude<Claim, { kind: 'exec' | 'membership' }>,
  account: Account,
  rules: ProxyRules,
): void {
  const reject = (why: string) => new Rejected(`${claim.kind} ${claim.name} ${why}`)
  if (claim.kind === 'image') {
    if (!isOurImage(account, rules)) throw reject('is none of the images that may run')
    return
  }
  const owned = isOwned(labelsOf(claim.kind, account), rules)
  const name = nameOf(account)
  if (claim.kind !== 'container') {
    // The Engine makes one where ours is gone. It keeps one that is in use.
    if (claim.kind === 'volume' && claim.may === 'be removed' && isNamesake(account)) return
    if (!owned) throw reject("is not this installation's")
    return
  }
  if (claim.may === 'be attached' && rules.attachedContainers.includes(name)) return
  if (!owned) throw reject("is not this installation's")
  const isHelper = name.endsWith(helperSuffix)
  if (claim.may === 'start' && isHelper) throw reject('was made for files and never runs')
  if (claim.may === 'hold files' && !(isHelper && statusOf(account) === 'created'))
    throw reject('was not made for files')
}

/** A volume that is named like one of a stack of ours, and is as the Engine itself makes it. */
export function isNamesake(account: Account): boolean {
  const { Driver: driver, Options: options } = account
  const given = { Driver: typeof driver === 'string' ? driver : '', Options: asObject(options) as DockerLabels }
  return isUnlabelled({ ...given, Labels: labelsOf('volume', account) }) && stackOfVolume(nameOf(account)) !== undefined
}

export function labelsOf(kind: 'container' | 'network' | 'volume', account: Account): DockerLabels {
  const labels = kind === 'container' ? asObject(account['Config'])['Labels'] : account['Labels']
  return Object.fromEntries(
    Object.entries(asObject(labels)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function nameOf({ Name: name }: Account): string {
  return typeof name === 'string' ? name.replace(/^\//, '') : ''
}

export function asObject(value: unknown): Account {
  return typeof value === 'object' && value !== null ? (value as Account) : {}
}

function statusOf(account: Account): unknown {
  return asObject(account['State'])['Status']
}

/** By its tags and digests: nobody behind the door can give or take one. */
function isOurImage({ RepoTags: tags, RepoDigests: digests }: Account, { images }: ProxyRules): boolean {
  const references = [tags, digests].flatMap((list): unknown[] => (Array.isArray(list) ? list : []))
  return references.some((reference) => typeof reference === 'string' && images.includes(repositoryOf(reference)))
}

/** `host:5000/name:tag` and `name@sha256:…` without what follows the name. */
function repositoryOf(reference: string): string {
  const [name = ''] = reference.split('@')
  return name.replace(/:[^:/]*$/, '')
}
