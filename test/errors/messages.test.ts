// Compares the error messages of every part with a list, so that a review of a change sees their wording.
// `npm run update:messages` updates the list.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { listMessages, messagesFile, parts } from '#scripts/messages/list-messages.ts'

/** The least number of messages of each part. With fewer, the collection misses some. */
const minMessages: Record<string, number> = {
  cli: 120,
  client: 2,
  contract: 15,
  'control-plane': 380,
  'docker-proxy': 50,
  gateway: 65,
  local: 18,
  'tenant-runtime': 480,
}

const { text, counts } = listMessages()

test(`the error messages are those of ${messagesFile}; \`npm run update:messages\` updates it`, async (t) => {
  const stored = new Set(readFileSync(messagesFile, 'utf8').split('\n'))
  const current = new Set(text.split('\n'))
  t.same([...current.difference(stored)], [], 'no message is missing from the list')
  t.same([...stored.difference(current)], [], 'the list has no message that no source has')
  t.equal(readFileSync(messagesFile, 'utf8'), text, 'the list is in order')
})

test('the collection finds the messages of every part', async (t) => {
  t.same([...counts.keys()], Object.keys(minMessages))
  for (const part of parts) t.ok((counts.get(part) ?? 0) >= (minMessages[part] ?? Infinity), part)
})
