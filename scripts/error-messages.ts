// `npm run update:messages` writes test/errors/messages.txt: every error message of every part, for reviews of their wording.
import { writeFileSync } from 'node:fs'
import { listMessages, messagesFile } from './messages/list-messages.ts'

writeFileSync(messagesFile, listMessages().text)
