// The room of a user, with the policies that decide about it, for tests of private channels.
import type { TestTenant } from '#test/support/runtime.ts'
import { RawSocket } from './raw-socket.ts'

export const topic = 'realtime:room-ada'
export const isPrivate = { private: true, broadcast: { ack: true }, presence: { enabled: true } }

export const userId = "current_setting('app.user_id', true)"
/** Users receive from the rooms that have their name, and `ada` may also send. */
export const policies = `
  create policy receivers on realtime_messages for select using (realtime_topic() = 'room-' || ${userId} or ${userId} = 'ben');
  create policy senders on realtime_messages for insert
    with check (realtime_topic() = 'room-' || ${userId} and (extension = 'broadcast' or ${userId} <> 'ada'))`

/** Connects a caller and joins a room. */
export async function join(tenant: TestTenant, caller: string | undefined, name = topic) {
  const raw = await RawSocket.open(tenant, caller === 'service' ? { key: tenant.secretKey } : {})
  const token = caller === undefined || caller === 'service' ? {} : { access_token: tenant.token(caller) }
  return { raw, ...(await raw.join(name, isPrivate, token)) }
}
