// A gateway with a Postgres proxy, and tenants behind it.
import { Activity, type Route } from '@tenantry/contract'
import { Value } from 'typebox/value'
import { send, token, type Setting } from './gateway.ts'

export const withProxy = { postgres: { port: 0 } }

export function proxyOf({ gateway }: Setting): number {
  if (gateway.postgresPort === undefined) throw new Error('the Postgres proxy does not listen')
  return gateway.postgresPort
}

export async function activityOf(
  { gateway }: Setting,
  tenantId: string,
): Promise<Activity['tenants'][string] | undefined> {
  const { body } = await send(gateway.internalPort, {
    path: '/internal/v1/activity',
    headers: { 'x-tenantry-internal': token },
  })
  const activity: unknown = JSON.parse(body)
  if (!Value.Check(Activity, activity)) throw new Error(body)
  return activity.tenants[tenantId]
}

/** Adds a tenant whose Postgres is a double or a real one. */
export function addTenant(setting: Setting, name: string, postgres: string, more: Partial<Route> = {}): Promise<Route> {
  return setting.add(name, { dedicated: true, postgres, ...more })
}
