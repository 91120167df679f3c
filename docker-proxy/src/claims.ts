// The objects that a call uses, and what must be true of each. Pure: the Engine's descriptions are arguments.
import { isOwned, isUnlabelled } from '../../control-plane/src/engines/index.ts'
import { stackOfVolume } from '../../control-plane/src/stacks/index.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { Rejected } from './rejected.ts'

/** A requirement of a call: an object, and what the call needs to do with it. */
export type Claim =
  | { kind: 'container'; name: string; may: 'be used' | 'start' | 'be attached' | 'hold files' }
  | { kind: 'network'; name: string }
  | { kind: 'volume'; name: string; may?: 'be removed' }
  | { kind: 'image'; name: string }
  /** A command that was created in a container. */
  | { kind: 'exec'; name: string }
  /** The membership of a container in a network, which may end if one of the two belongs to Tenantry. */
  | { kind: 'membership'; name: string; container: string }

/** The Engine's description of an object. */
export type Account = Readonly<Record<string, unknown>>
type DockerLabels = Readonly<Record<string, string>>

/** Suffix of containers through which files are written, and which never run. */
export const helperSuffix = '-files'

/** Checks a claim against the Engine's description of the object. @throws Rejected if it does not hold */
export function checkClaim(
  claim: Exclude<Claim, { kind: 'exec' | 'membership' }>,
  account: Account,
  rules: ProxyRules,
): void {
  const reject = (why: string) => new Rejected(`${claim.kind} ${claim.name} ${why}`)
  if (claim.kind === 'image') {
    if (!isOurImage(account, rules)) throw reject('is not an allowed image')
    return
  }
  const owned = isOwned(labelsOf(claim.kind, account), rules)
  const name = nameOf(account)
  if (claim.kind !== 'container') {
    // The Engine creates such a volume if Tenantry's is gone, and does not remove one that is in use.
    if (claim.kind === 'volume' && claim.may === 'be removed' && isNamesake(account)) return
    if (!owned) throw reject('does not belong to this installation')
    return
  }
  if (claim.may === 'be attached' && rules.attachedContainers.includes(name)) return
  if (!owned) throw reject('does not belong to this installation')
  const isHelper = name.endsWith(helperSuffix)
  if (claim.may === 'start' && isHelper) throw reject('was created for files and must not run')
  if (claim.may === 'hold files' && !(isHelper && statusOf(account) === 'created'))
    throw reject('was not created for files')
}

/** Whether a volume is named like one of Tenantry's stacks and is as the Engine itself creates it. */
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

/** Whether an image is allowed by its tags and digests, which clients of the proxy cannot change. */
function isOurImage({ RepoTags: tags, RepoDigests: digests }: Account, { images }: ProxyRules): boolean {
  const references = [tags, digests].flatMap((list): unknown[] => (Array.isArray(list) ? list : []))
  return references.some((reference) => typeof reference === 'string' && images.includes(repositoryOf(reference)))
}

/** Returns the repository of `host:5000/name:tag` or `name@sha256:…`. */
function repositoryOf(reference: string): string {
  const [name = ''] = reference.split('@')
  return name.replace(/:[^:/]*$/, '')
}
