// The way of a forwarded request into each of its states, and every event that may occur there.
import { rejections } from '#gateway/errors.ts'
import { startScene, type Scene } from './response-scene.ts'

export const { badGateway, runtimeUnreachable: unreachable, bodyTimeout, malformedRequest } = rejections
export const text = { 'content-type': 'text/plain' }
export const eventStream = { 'content-type': 'text/event-stream' }
export const abc = Buffer.from('abc')

const admission = (scene: Scene) => ({
  settle: (isUsed: boolean) => void scene.done.push(isUsed ? 'used' : 'unused'),
})

/** Creates a request in each state, without the changes that led there. An open event stream is also in the state `sending`. */
export const paths = {
  received: () => startScene(),
  queued: () => after(startScene(), ({ response, wait }) => response.queue(wait)),
  admitted: () => after(admittedIn(startScene()), ({ response, wait }) => response.waitFor(wait)),
  forwarded: () => forwardedIn(startScene()),
  'awaiting-slot': () =>
    after(forwardedIn(startScene({ slots: 'awaited' })), ({ response, source }) =>
      response.begin(200, eventStream, source),
    ),
  sending: () => after(forwardedIn(startScene()), ({ response, source }) => response.begin(200, text, source)),
  stream: () => after(forwardedIn(startScene()), ({ response, source }) => response.begin(200, eventStream, source)),
  over: () => after(startScene(), ({ response }) => response.reject(unreachable)),
}
export type Path = keyof typeof paths

function after(scene: Scene, step: (scene: Scene) => void): Scene {
  step(scene)
  scene.changes()
  return scene
}

function admittedIn(scene: Scene): Scene {
  return after(scene, ({ response }) => response.admit(admission(scene)))
}

export function forwardedIn(scene: Scene): Scene {
  return after(admittedIn(scene), ({ response, call }) => response.forwardedTo(call))
}

/** The events that may occur in any state. */
export const events = {
  queue: ({ response, wait }: Scene) => response.queue(wait),
  admit: (scene: Scene) => scene.response.admit(admission(scene)),
  waitFor: ({ response, wait }: Scene) => response.waitFor(wait),
  proceed: ({ response }: Scene) => response.proceed(),
  forwardedTo: ({ response, call }: Scene) => response.forwardedTo(call),
  awaitContinue: ({ response }: Scene) => response.awaitContinue(),
  requestBody: ({ response }: Scene) => response.requestBody(),
  inform: ({ response }: Scene) => response.inform(103, {}),
  begin: ({ response, source }: Scene) => response.begin(200, text, source),
  write: ({ response }: Scene) => response.write(abc),
  end: ({ response }: Scene) => response.end(),
  switchProtocols: ({ response }: Scene) => response.switchProtocols(),
  reject: ({ response }: Scene) => response.reject(unreachable),
  rejectAndClose: ({ response }: Scene) => response.rejectAndClose(unreachable),
  fail: ({ response }: Scene) => response.fail(unreachable),
  giveUp: ({ response }: Scene) => response.giveUp(badGateway),
  readerIdle: ({ response }: Scene) => response.readerIdle(),
  giveUpAndClose: ({ response }: Scene) => response.giveUpAndClose(bodyTimeout),
  readerReady: ({ response }: Scene) => response.readerReady(),
  clientGone: ({ response }: Scene) => response.clientGone(),
  rejectUnreadable: ({ response }: Scene) => response.rejectUnreadable(malformedRequest),
}
