// The rates of one tenant, which outlive its connections: a client that connects again has no new burst.
import type { ChannelLimits } from './limits.ts'
import { Rate } from './rate.ts'

export class TenantRates {
  readonly messages: Rate
  readonly presences: Rate
  readonly joins: Rate
  readonly frames: Rate

  /** @param now returns monotonic milliseconds */
  constructor({ messages, presences, joins, frames }: ChannelLimits, now: () => number) {
    this.messages = new Rate(messages, now)
    this.presences = new Rate(presences, now)
    this.joins = new Rate(joins, now)
    this.frames = new Rate(frames, now)
  }

  /** Uses the limits of another plan. */
  change({ messages, presences, joins, frames }: ChannelLimits): void {
    this.messages.perSecond = messages
    this.presences.perSecond = presences
    this.joins.perSecond = joins
    this.frames.perSecond = frames
  }

  /** Whether new rates would allow as much. */
  get isFull(): boolean {
    return [this.messages, this.presences, this.joins, this.frames].every(({ isFull }) => isFull)
  }
}
