// The page of the chat: messages are broadcasts, the people are presence, the tasks are a table and its changes.
import { LiveTable } from './live-table.js'

const element = (id) => document.getElementById(id)

/** Creates an element with a text. A text of others is never HTML. */
function create(tag, text, properties = {}) {
  const made = Object.assign(document.createElement(tag), properties)
  made.textContent = text
  return made
}

const session = await fetch('/session', { method: 'POST' }).then((response) => response.json())
const client = window.supabase.createClient(session.url, session.key, { accessToken: async () => session.token })

let name = sessionStorage.getItem('name') ?? `Guest ${session.user_id.slice(0, 4)}`
element('name').value = name

function showStatus(state, text) {
  element('status').dataset.state = state
  element('status').textContent = text
}

/** Adds a line to the messages, and scrolls to it if the newest line was visible. */
function addLine(line) {
  const list = element('messages')
  const wasAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40
  list.append(line)
  while (list.childElementCount > 500) list.firstElementChild.remove()
  if (wasAtEnd) list.scrollTop = list.scrollHeight
}

function showMessage({ name: author, text, user_id: userId }) {
  const line = create('div', '', { className: userId === session.user_id ? 'message own' : 'message' })
  line.append(create('strong', String(author)), create('p', String(text)))
  addLine(line)
}

function showPeople(state) {
  const people = Object.values(state).map(([entry]) => String(entry.name))
  element('people').replaceChildren(...people.sort().map((person) => create('li', person)))
  element('people-count').textContent = people.length
}

const room = client.channel('lobby', {
  config: { broadcast: { self: true, ack: true }, presence: { key: session.user_id } },
})

const table = new LiveTable({
  read: () => client.from('tasks').select().order('created_at', { ascending: false }).limit(100),
  show: (tasks) => {
    element('tasks').replaceChildren(...tasks.map(taskRow))
    element('tasks-count').textContent = tasks.length
  },
  onError: (error) => showStatus('error', `The tasks cannot be read: ${error.message}`),
})

/** A row whose controls work for the owner of the task, as the policy of the collection demands. */
function taskRow(task) {
  const row = document.createElement('tr')
  const isOwn = task.owner_id === session.user_id
  const done = create('input', '', { type: 'checkbox', checked: task.done, disabled: !isOwn })
  done.setAttribute('aria-label', `Done: ${task.title}`)
  done.addEventListener('change', () => report(client.from('tasks').update({ done: done.checked }).eq('id', task.id)))
  const remove = create('button', '✕', { disabled: !isOwn, className: 'quiet' })
  remove.setAttribute('aria-label', `Remove: ${task.title}`)
  remove.addEventListener('click', () => report(client.from('tasks').delete().eq('id', task.id)))
  for (const content of [done, create('span', task.title, { className: task.done ? 'done' : '' }), remove]) {
    const cell = document.createElement('td')
    cell.append(content)
    row.append(cell)
  }
  return row
}

/** Shows the error of a request. */
async function report(request) {
  const { error } = await request
  if (error !== null) showStatus('error', error.message)
}

room
  .on('broadcast', { event: 'message' }, ({ payload }) => showMessage(payload))
  .on('presence', { event: 'sync' }, () => showPeople(room.presenceState()))
  .on('presence', { event: 'join' }, ({ newPresences }) => {
    for (const entry of newPresences) addLine(create('p', `${entry.name} is here`, { className: 'note' }))
  })
  .on('presence', { event: 'leave' }, ({ leftPresences }) => {
    for (const entry of leftPresences) addLine(create('p', `${entry.name} left`, { className: 'note' }))
  })
  .on('postgres_changes', { event: '*', schema: 'public', table: 'tasks' }, (change) => table.apply(change))
  // The client joins again by itself after the connection or the service was interrupted.
  .subscribe(async (status, error) => {
    if (status !== 'SUBSCRIBED') {
      showStatus('connecting', error === undefined ? 'Connecting…' : `Connecting again: ${error.message}`)
      return
    }
    // Changes that the page has missed are in the table, so it is read after each join.
    await Promise.all([table.load(), room.track({ name })])
    showStatus('connected', 'Connected')
  })

/** Runs what a form is for, with the text of its field. Shows its error. */
function onSubmit(form, field, work) {
  element(form).addEventListener('submit', (event) => {
    event.preventDefault()
    const text = element(field).value.trim()
    if (text !== '') work(text).catch((error) => showStatus('error', error.message))
  })
}

onSubmit('message-form', 'message', async (text) => {
  const payload = { name, text, user_id: session.user_id }
  const result = await room.send({ type: 'broadcast', event: 'message', payload })
  if (result === 'ok') element('message').value = ''
  else showStatus('error', `The message was not sent: ${result}`)
})
onSubmit('name-form', 'name', async (text) => {
  name = text
  sessionStorage.setItem('name', name)
  await room.track({ name })
})
onSubmit('task-form', 'task', async (title) => {
  await report(client.from('tasks').insert({ title }))
  element('task').value = ''
})
