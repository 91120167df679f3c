// Checks the rules of a gateway's push that its JSON schema can't express. Pure.
import { isTenantId, type UsagePush } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'
import { parseHour } from './hours.ts'
import { homeSource } from './home-reading.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/** Matches text that Postgres can store. */
const plainText = /^[^\0\p{Surrogate}]{0,200}$/u

/**
 * Checks a push.
 * @throws ControlError INVALID_FIELD that names the first invalid field
 */
export function checkPush({ source, boot, counters, complete_until: completeUntil }: UsagePush): void {
  if (source === '' || !plainText.test(source) || source.startsWith(homeSource('')))
    reject('source', "must be 1 to 200 characters, and not begin like a home's source")
  if (!uuid.test(boot)) reject('boot', 'must be a UUID')
  if (completeUntil !== undefined && parseHour(completeUntil) === undefined)
    reject('complete_until', 'must be the start of a UTC hour, ISO 8601')
  for (const [number, counter] of counters.entries()) {
    const field = (name: string) => `counters/${number}/${name}`
    if (!isTenantId(counter.tenant_id)) reject(field('tenant_id'), 'must be the id of a tenant')
    if (parseHour(counter.hour) === undefined) reject(field('hour'), 'must be the start of a UTC hour, ISO 8601')
    for (const name of ['group', 'method', 'status_class', 'bucket'] as const) {
      if (!plainText.test(counter[name])) reject(field(name), 'must be plain text of at most 200 characters')
    }
    if (!Number.isSafeInteger(counter.value)) reject(field('value'), 'must be below 2 to the power of 53')
  }
}

function reject(field: string, rule: string): never {
  throw new ControlError('INVALID_FIELD', `Field "${field}" ${rule}.`)
}
