// Checks with the Engine that the objects of a call belong to Tenantry. IDs replace names, so that the call uses the
// object that was checked.
import { isOwned } from '../../control-plane/src/engines/index.ts'
import { asObject, checkClaim, labelsOf, type Claim } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'
import type { EngineSocket } from './engine-socket.ts'
import { Rejected } from './rejected.ts'

/** A rejection of the Engine itself, for example of an object that does not exist. */
export class EngineRejection extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Checks of objects' owners. */
export type Ownership = ReturnType<typeof createOwnership>

export function createOwnership(engine: EngineSocket, rules: ProxyRules) {
  async function inspect(version: string, path: string, signal: AbortSignal): Promise<unknown> {
    const { status, body } = await engine.request({ method: 'GET', path: `/${version}${path}` }, signal)
    if (status !== 200) throw new EngineRejection(status, messageOf(body))
    return body
  }

  async function confirm(version: string, claim: Claim, signal: AbortSignal): Promise<string> {
    const name = encodeURIComponent(claim.name)
    if (claim.kind === 'exec') {
      const { ContainerID: container } = asObject(await inspect(version, `/exec/${name}/json`, signal))
      if (typeof container !== 'string') throw new Rejected('the command does not belong to a container')
      await confirm(version, { kind: 'container', name: container, may: 'start' }, signal)
      return claim.name
    }
    if (claim.kind === 'membership') {
      const network = asObject(await inspect(version, `/networks/${name}`, signal))
      if (!isOwned(labelsOf('network', network), rules))
        await confirm(version, { kind: 'container', name: claim.container, may: 'be used' }, signal)
      return typeof network['Id'] === 'string' ? network['Id'] : claim.name
    }
    const account = asObject(
      await inspect(
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
    /** Checks a claim. @returns the ID for the call @throws Rejected, EngineRejection */
    confirm,
    /** Checks that all existing ones of these networks, given by name or ID, belong to Tenantry. @throws Rejected */
    async confirmNetworks(version: string, names: readonly string[], signal: AbortSignal): Promise<void> {
      const filters = encodeURIComponent(JSON.stringify({ label: [`tenantry.installation=${rules.installation}`] }))
      const own = await inspect(version, `/networks?filters=${filters}`, signal)
      const known = new Set(
        (Array.isArray(own) ? own : []).flatMap((network: unknown) => [
          asObject(network)['Name'],
          asObject(network)['Id'],
        ]),
      )
      // A network that has disappeared between two calls has no owner.
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
  return typeof message === 'string' ? message : 'The Docker Engine rejected the call.'
}
