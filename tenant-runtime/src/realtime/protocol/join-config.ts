// Reads the payload of a join: what the channel is for, and the token of its user. Pure.
import { Type } from 'typebox'
import { Value } from 'typebox/value'

const Text = Type.String({ maxLength: 4_096 })
const Nullable = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

const WantedChanges = Type.Object({
  event: Type.String({ maxLength: 16 }),
  schema: Nullable(Text),
  table: Nullable(Text),
  filter: Nullable(Text),
  select: Nullable(Type.Array(Text, { maxItems: 1_600 })),
})

/** A subscription to changes. The response to the join returns its members as the client sent them. */
export interface WantedChanges {
  event: string
  schema: string | null | undefined
  table: string | null | undefined
  filter: string | null | undefined
  select: readonly string[] | null | undefined
}

/** The maximum characters of all subscriptions of a channel, as JSON. */
const maxChangesLength = 16_384

const JoinPayload = Type.Object({
  config: Nullable(
    Type.Object({
      broadcast: Nullable(
        Type.Object({
          ack: Nullable(Type.Boolean()),
          self: Nullable(Type.Boolean()),
          replay: Nullable(
            Type.Object({ since: Type.Number({ minimum: 0 }), limit: Nullable(Type.Integer({ minimum: 1 })) }),
          ),
          replication_ready: Nullable(Type.Boolean()),
        }),
      ),
      presence: Nullable(
        Type.Object({ key: Nullable(Type.String({ maxLength: 1_024 })), enabled: Nullable(Type.Boolean()) }),
      ),
      postgres_changes: Nullable(Type.Array(WantedChanges, { maxItems: 100 })),
      private: Nullable(Type.Boolean()),
    }),
  ),
  access_token: Nullable(Type.String({ maxLength: 16_384 })),
})

/** The maximum number of stored messages that a join requests. */
const maxReplayed = 25

/** Stored messages that a client wants. */
export interface ReplayRequest {
  /** The time in milliseconds since the epoch after which they were stored. */
  since: number
  /** The maximum number of messages. The newest ones are sent. */
  limit: number
}

/** The purposes of a channel. */
export interface JoinConfig {
  /** Whether broadcasts get a reply. */
  ack: boolean
  /** Whether the channel receives its own broadcasts. */
  self: boolean
  replay: ReplayRequest | undefined
  /** Whether the client wants to know when broadcasts from SQL and changes flow. */
  reportsReady: boolean
  presence: {
    /** Whether the channel receives the presence of others. */
    isFollowed: boolean
    /** The key of the channel's own entry; undefined lets the server choose one. */
    key: string | undefined
  }
  changes: readonly WantedChanges[]
  isPrivate: boolean
  /** Undefined for the connection's own key. */
  accessToken: string | undefined
}

/** Returns the configuration, or what is wrong with the payload. */
export function readJoin(payload: unknown): JoinConfig | { wrong: string } {
  if (!Value.Check(JoinPayload, payload)) {
    const error = Value.Errors(JoinPayload, payload)[0]
    return { wrong: `The payload of the join is not valid: ${error?.instancePath || 'it'} ${error?.message ?? ''}.` }
  }
  const { broadcast, presence, postgres_changes: listed, private: isPrivate } = payload.config ?? {}
  // Further members of the client's objects are not kept.
  const changes = (listed ?? []).map(({ event, schema, table, filter, select }) => ({
    event,
    schema,
    table,
    filter,
    select,
  }))
  if (JSON.stringify(changes).length > maxChangesLength)
    return { wrong: `The subscriptions to changes have more than ${maxChangesLength} characters.` }
  return {
    ack: broadcast?.ack ?? false,
    self: broadcast?.self ?? false,
    replay: broadcast?.replay
      ? { since: broadcast.replay.since, limit: Math.min(broadcast.replay.limit ?? maxReplayed, maxReplayed) }
      : undefined,
    reportsReady: broadcast?.replication_ready ?? false,
    presence: { isFollowed: presence?.enabled ?? false, key: presence?.key || undefined },
    changes,
    isPrivate: isPrivate ?? false,
    accessToken: payload.access_token ?? undefined,
  }
}
