// The names of topics: clients send `realtime:<name>`; policies, SQL and HTTP use the name alone. Pure.

export const topicPrefix = 'realtime:'

/** Returns the topic as clients send it. */
export function topicOf(name: string): string {
  return `${topicPrefix}${name}`
}

/** Returns the name of a topic that a client has joined. */
export function nameOf(topic: string): string {
  return topic.slice(topicPrefix.length)
}
