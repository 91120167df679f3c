// The reasons that clients receive when a join is rejected, a message is dropped, or a channel or connection ends.
// Each begins with a code, which docs/realtime.md lists.
import type { Tenant } from '../../tenancy/tenant.ts'

const sent = 'The rate of messages is limited for each connection and for the whole tenant.'

export const reasons = {
  unmatchedTopic: 'UnmatchedTopic: A topic must begin with "realtime:" and have a name of at most 246 bytes.',
  notJoined: 'NotJoined: The connection has not joined this topic.',
  invalidJoin: (wrong: string) => `InvalidJoinPayload: ${wrong}`,
  tooManyChannels: (max: number) => `ChannelRateLimitReached: A connection has at most ${max} channels.`,
  tooManyJoins: (max: number) => `ClientJoinRateLimitReached: The plan allows ${max} joins per second.`,
  unauthorized: (why: string) => `Unauthorized: ${why}`,
  notWritable: 'Unauthorized: The policies do not allow this user to send to the topic.',
  notReadable: 'Unauthorized: The policies do not allow this user to read from the topic.',
  rightsUnknown: (why: string) => `Unauthorized: The policies failed: ${why}.`,
  notStorable: (why: string) => `InvalidPayload: The message cannot be stored: ${why}.`,
  noMessagesTable:
    'PrivateChannelsUnavailable: The tenant has no table "realtime_messages", whose policies decide about private channels. ' +
    'The documentation of realtime channels contains its SQL.',
  changesUnavailable: (why: string) => `UnableToSubscribeToChanges: ${why}`,
  databaseUnavailable: 'DatabaseUnavailable: The database does not respond. The client may join again.',
  changesLost: (why: string) => `ChangesLost: ${why}`,
  changesEnded: (why: string) => `ChangesEnded: ${why}`,
  tooManyMessages: (max: number) =>
    `MessagePerSecondRateLimitReached: The plan allows ${max} messages per second. ${sent}`,
  tooManyPresences: (max: number) => `PresenceRateLimitReached: The plan allows ${max} presence messages per second.`,
  payloadTooLarge: (max: number) => `PayloadTooLarge: The plan allows payloads of ${max} bytes.`,
  presenceFull: 'PresenceFull: The presence of this topic has too many bytes.',
  queueFull: 'MessageQueueFull: Too many messages wait to be sent. The message was dropped.',
  invalidPayload: (wrong: string) => `InvalidPayload: ${wrong}`,
  invalidPresence:
    'InvalidPayload: A message of presence must have the event "track" with an object, or the event "untrack".',
  unknownEvent: (event: string) =>
    `UnknownEvent: Unknown event "${event.slice(0, 100)}". Allowed: access_token, broadcast, phx_join, phx_leave, presence.`,
  tokenExpired: 'TokenExpired: The token has expired.',
  tokenRevoked: (why: string) => `TokenRevoked: ${why}`,
} as const

/** The reason for the end of a connection. */
export interface Closing {
  /** The status (RFC 6455, section 7.4). */
  code: number
  /** The reason. The connection ends with its first 123 bytes. */
  reason: string
  /** Whether the channels of the connection receive the reason, too. */
  isForChannels?: true
}

export const closings = {
  slowReader: { code: 1013, reason: 'SlowReader: Messages were not read in time.' },
  tooManyBytes: { code: 1013, reason: 'TooManyBytes: Too many bytes of unfinished messages are in memory.' },
  tooManyFrames: {
    code: 1008,
    reason: 'TooManyFrames: The connection or the tenant sends too many frames per second.',
  },
  noHeartbeat: { code: 1001, reason: 'HeartbeatTimeout: No message arrived for 60 seconds.' },
  keyRevoked: { code: 1008, reason: 'KeyRevoked: The key of the connection is no longer valid.', isForChannels: true },
  tenantGone: { code: 1001, reason: 'TenantGone: The tenant was deleted or is served elsewhere.', isForChannels: true },
  stopping: { code: 1012, reason: 'Stopping: The service stops or is replaced. Connect again.' },
  failed: { code: 1011, reason: 'InternalError: The connection failed.' },
} as const satisfies Record<string, Closing>

/**
 * Returns the reason for the end of all connections of a tenant; undefined while gateways serve it.
 * @param tenant undefined when this runtime does not know it
 */
export function unservedClosing(tenant: Pick<Tenant, 'unserved'> | undefined): Closing | undefined {
  if (tenant === undefined || tenant.unserved?.phase === 'deleted') return closings.tenantGone
  if (tenant.unserved === undefined) return undefined
  const { reason = 'The tenant is suspended.' } = tenant.unserved
  return { code: 1008, reason: `TenantSuspended: ${reason}`, isForChannels: true }
}

/** The maximum bytes of the reason with which a WebSocket ends (RFC 6455, section 5.5). */
const maxReasonBytes = 123

/** Returns the part of a reason that a WebSocket can end with. */
export function truncated(reason: string): string {
  const bytes = Buffer.from(reason)
  let end = Math.min(bytes.length, maxReasonBytes)
  // A character that does not fit is dropped as a whole.
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
