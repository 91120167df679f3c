// Joins a topic: checks the topic, the user's token, the rights on a private topic and the subscriptions to changes.
import { RuntimeError } from '../../errors.ts'
import { isOfStatement, RoundTripError } from '../../database/round-trip-error.ts'
import { SubscriptionError } from '../changes/read-filter.ts'
import { planSubscriptions, type Subscription } from '../changes/subscription.ts'
import { encode, maxFieldBytes } from '../protocol/encode.ts'
import type { ClientFrame } from '../protocol/frame.ts'
import { Replay } from '../messages/replay.ts'
import { readJoin, type JoinConfig } from '../protocol/join-config.ts'
import { nameOf, topicPrefix } from '../protocol/topic-name.ts'
import { authenticateCaller, rejectionOf } from './callers.ts'
import { Channel, type Caller, type ChannelConnection } from './channel.ts'
import { reasons } from '../protocol/reasons.ts'
import type { TenantHub } from './tenant-hub.ts'
import {
  allRights,
  mayJoin,
  NoMessagesTableError,
  readTopicRights,
  RejectedRowError,
  type TopicRights,
} from '../messages/topic-rights.ts'

/** The reason for which a join is rejected. */
export class JoinRejection extends Error {}

/** A connection as a join uses it. */
interface JoiningConnection extends ChannelConnection {
  readonly hub: TenantHub
  /** The owner of the connection's key. */
  readonly caller: Caller
}

interface Join {
  /** Whether the connection still waits for this join. */
  isCurrent: () => boolean
  /** Called when the channel exists, before its first message. */
  onJoined: (channel: Channel, response: object) => void
}

/**
 * Joins a topic, and sends what a client expects after the reply.
 * @throws JoinRejection
 */
export async function joinChannel(connection: JoiningConnection, frame: ClientFrame, join: Join): Promise<void> {
  const { hub } = connection
  const { topic: name } = frame
  if (!name.startsWith(topicPrefix) || name === topicPrefix || Buffer.byteLength(name) > maxFieldBytes)
    throw new JoinRejection(reasons.unmatchedTopic)
  const config = readJoin(frame.payload)
  if ('wrong' in config) throw new JoinRejection(reasons.invalidJoin(config.wrong))
  if (config.replay !== undefined && !config.isPrivate)
    throw new JoinRejection(reasons.invalidJoin('Only private channels have "replay".'))
  const replay = config.replay && new Replay(nameOf(name), config.replay)
  // What is sent while the client joins is part of the replay.
  if (replay !== undefined) hub.stored.open(replay)
  try {
    await joinWith(connection, frame, config, replay, join)
  } finally {
    if (replay !== undefined) hub.stored.close(replay)
  }
}

async function joinWith(
  connection: JoiningConnection,
  frame: ClientFrame,
  config: JoinConfig,
  replay: Replay | undefined,
  join: Join,
): Promise<void> {
  const { hub } = connection
  const { topic: name } = frame
  const { caller, rights, subscriptions } = await rejecting(() => readRightsAndPlan(connection, name, config, replay))
  await hub.whenSynced()
  if (!join.isCurrent()) return
  const topic = hub.topic(name, config.isPrivate)
  const channel = new Channel({
    connection,
    topic,
    joinRef: frame.joinRef ?? frame.ref,
    config,
    caller,
    rights,
    subscriptions,
    presenceKey: config.presence.key ?? hub.deps.newId(),
  })
  // From now on the topic exists. The channel receives nothing before it has started.
  topic.add(channel)
  const start = () => {
    if (!join.isCurrent()) {
      hub.leave(channel)
      return
    }
    channel.joinedAt = hub.fanOut.number
    join.onJoined(channel, { postgres_changes: subscriptions.map(({ id, wanted }) => ({ id, ...wanted })) })
    if (subscriptions.length > 0) channel.pushSubscribed()
    if (config.reportsReady) channel.pushReady()
    if (rights.broadcast.read && replay !== undefined) channel.replay(replay)
    if (channel.followsPresence)
      connection.deliver(
        encode(connection.version, {
          joinRef: channel.joinRef,
          topic: name,
          event: 'presence_state',
          payload: topic.presenceState(),
        }),
      )
  }
  if (subscriptions.length === 0) start()
  else
    await rejecting(() => hub.changes.add(channel, start)).catch((error: unknown) => {
      hub.leave(channel)
      throw error
    })
}

async function readRightsAndPlan(
  connection: JoiningConnection,
  name: string,
  config: JoinConfig,
  replay: Replay | undefined,
): Promise<{ caller: Caller; rights: TopicRights; subscriptions: Subscription[] }> {
  const { hub } = connection
  const caller = await callerOf(connection, config.accessToken)
  const rights = config.isPrivate ? await readTopicRights(hub.tenant, caller.context, nameOf(name)) : allRights
  if (!mayJoin(rights)) throw new JoinRejection(reasons.notReadable)
  const subscriptions = await planSubscriptions(hub.tenant, hub.tables, config.changes)
  await hub.stored.start(hub.tenant)
  if (rights.broadcast.read) await replay?.read(hub.tenant, hub.limits.payloadBytes)
  return { caller, rights, subscriptions }
}

async function callerOf(connection: JoiningConnection, accessToken: string | undefined): Promise<Caller> {
  const { hub, caller } = connection
  if (accessToken === undefined || accessToken === caller.credential) return caller
  try {
    return await authenticateCaller(hub.deps.authenticator, hub.tenant, accessToken)
  } catch (error) {
    throw new JoinRejection(reasons.unauthorized(rejectionOf(error)), { cause: error })
  }
}

/** Runs a part of a join. Its errors become the reason that the client receives. */
async function rejecting<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof SubscriptionError)
      throw new JoinRejection(reasons.changesUnavailable(cause.message), { cause })
    if (cause instanceof NoMessagesTableError) throw new JoinRejection(reasons.noMessagesTable, { cause })
    if (cause instanceof RejectedRowError) throw new JoinRejection(reasons.rightsUnknown(cause.message), { cause })
    if (isOfStatement(cause)) throw new JoinRejection(reasons.invalidJoin(`${cause.message}.`), { cause })
    if (cause instanceof RoundTripError || cause instanceof RuntimeError)
      throw new JoinRejection(reasons.databaseUnavailable, { cause })
    throw cause
  }
}
