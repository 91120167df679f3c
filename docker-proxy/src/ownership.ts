// Asks the Engine whether what a call touches is ours. Ids take the place of names, so that the call goes to what was looked at.
import { isOwned } from '../../control-plane/src/engines/index.ts'
import { asObject, checkClaim, labelsOf, type Claim } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'
import type { EngineSocket } from './engine-socket.ts'
import { Rejected } from './rejected.ts'

/** The Engine's own refusal, e.g. for what is not there. */
export class EngineRejection extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface Ownership {
  /** @returns the id to go on with @throws Refused, EngineRefusal */
  confirm(version: string, claim: Claim, signal: AbortSignal): Promise<string>
  /** All of these networks, by name or id, that are there are ours. @throws Refused */
  confirmNetworks(version: string, names: readonly string[], signal: AbortSignal): Promise<void>
}

export function createOwnership(engine: EngineSocket, rules: ProxyRules): Ownership {
  async function poll(version: string, path: string, signal: AbortSignal): Promise<unknown> {
    const { status, body } = await engine.request({ method: 'GET', path: `/${version}${path}` }, signal)
    if (status !== 200) throw new EngineRejection(status, messageOf(body))
    return body
  }

  async function confirm(version: string, claim: Claim, signal: AbortSignal): Promise<string> {
    const name = encodeURIComponent(claim.name)
    if (claim.kind === 'exec') {
      const { ContainerID: container } = asObject(await poll(version, `/exec/${name}/json`, signal))
      if (typeof container !== 'string') throw new Rejected('the command belongs to no container')
      await confirm(version, { kind: 'container', name: container, may: 'start' }, signal)
      return claim.name
    }
    if (claim.kind === 'membership') {
      const network = asObject(await poll(version, `/networks/${name}`, signal))
      if (!isOwned(labelsOf('network', network), rules))
        await confirm(version, { kind: 'container', name: claim.container, may: 'be used' }, signal)
      return typeof network['Id'] === 'string' ? network['Id'] : claim.name
    }
    const account = asObject(
      await poll(
        version,
        `/${claim.kind}s/${name}${claim.kind === 'container' || claim.kind === 'image' ? '/json' : ''}`,
        signal,
      ),
    )
    checkClaim(claim, account, rules)
    const { Id: id } = account
    return typeof id === 'string' && claim.kind !== 'image' ? id : claim.name
  }

  return {
    confirm,
    async confirmNetworks(version, names, signal) {
      const filters = encodeURIComponent(JSON.stringify({ label: [`tenantry.installation=${rules.installation}`] }))
      const own = await poll(version, `/networks?filters=${filters}`, signal)
      const known = new Set(
        (Array.isArray(own) ? own : []).flatMap((network: unknown) => [
          asObject(network)['Name'],
          asObject(network)['Id'],
        ]),
      )
      // What went away between two calls is nobody's.
      for (const name of names.filter((one) => !known.has(one))) {
        await confirm(version, { kind: 'network', name }, signal).catch((cause: unknown) => {
          if (!(cause instanceof EngineRejection && cause.status === 404)) throw cause
        })
      }
    },
  }
}

export function messageOf(body: unknown): string {
  const { message } = asObject(body)
  return typeof message === 'string' ? message : 'refused'
}
