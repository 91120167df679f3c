// `node images/build.ts [NAME…]` builds the images whose content has changed, on the engine of DOCKER_HOST.
import Docker from 'dockerode'
import { baseImage, ensureBaseImage, imageId } from './base.ts'
import { contextOf, imageNames, imageTitles, type ImageName } from './catalogue.ts'
import { hashOf, tarOf, type Entry } from './context.ts'
import { follow } from './progress.ts'

const buildMilliseconds = 15 * 60_000
const maxTailLength = 4_000

const contextLabel = 'tenantry.context'
const baseLabel = 'tenantry.base'

export interface BuiltImage {
  name: ImageName
  /** `tenantry/<name>:<hash of its context>`; `:latest` is the same image. */
  tag: string
  /** Digest: `sha256:…`. */
  id: string
  /** Bytes on disk, including shared layers. */
  size: number
  /** False if the engine had the image already. */
  built: boolean
}

/**
 * Builds each image that the engine does not have with the same content on its current base image.
 * @throws Error with the end of the build's output
 */
export async function buildImages(
  docker: Docker,
  names: readonly ImageName[] = imageNames,
  note: (text: string) => void = () => undefined,
): Promise<BuiltImage[]> {
  const images: BuiltImage[] = []
  for (const name of names) {
    const context = await contextOf(name)
    images.push(await buildImage(docker, name, context, await hashOf(context), note))
  }
  return images
}

async function buildImage(
  docker: Docker,
  name: ImageName,
  context: readonly Entry[],
  hash: string,
  note: (text: string) => void,
): Promise<BuiltImage> {
  const tag = `tenantry/${name}:${hash}`
  const latest = `tenantry/${name}:latest`
  const isCurrent = await hasImage(docker, tag)
  if (!isCurrent) {
    const base = await ensureBaseImage(docker, note)
    note(`building ${tag}`)
    let tail = ''
    const stream = await docker.buildImage(tarOf(context), {
      t: tag,
      labels: { 'org.opencontainers.image.title': imageTitles[name], [contextLabel]: hash, [baseLabel]: base },
      // An engine may have no bridge, and the build downloads packages.
      networkmode: 'host',
      rm: true,
      forcerm: true,
      abortSignal: AbortSignal.timeout(buildMilliseconds),
    })
    try {
      await follow(docker, stream, (text) => (tail = (tail + text).slice(-maxTailLength)))
    } catch (cause) {
      throw new Error(`${tag} could not be built:\n${tail}`, { cause })
    }
  }
  await docker.getImage(tag).tag({ repo: `tenantry/${name}`, tag: 'latest' })
  const { Id: id, Size: size } = await docker.getImage(latest).inspect()
  return { name, tag, id, size, built: !isCurrent }
}

/** Reports whether the engine has the image on its current base image. Without a base image, as after a load, any base is accepted. */
async function hasImage(docker: Docker, tag: string): Promise<boolean> {
  if ((await imageId(docker, tag)) === undefined) return false
  const base = await imageId(docker, baseImage)
  const { Labels: labels } = (await docker.getImage(tag).inspect()).Config
  return base === undefined || labels[baseLabel] === base
}

function isImageName(name: string): name is ImageName {
  return imageNames.some((known) => known === name)
}

if (import.meta.main) {
  const names = process.argv.slice(2)
  const unknown = names.find((name) => !isImageName(name))
  if (unknown !== undefined)
    throw new Error(`Unknown image "${unknown.slice(0, 100)}". Allowed: ${imageNames.join(', ')}.`)
  const images = await buildImages(new Docker(), names.length === 0 ? imageNames : names.filter(isImageName), (text) =>
    process.stderr.write(`${text}\n`),
  )
  for (const { name, tag, size, built } of images) {
    process.stdout.write(
      `${name.padEnd(16)}${tag.padEnd(44)}${String(Math.round(size / 1e6)).padStart(5)} MB  ${built ? 'built' : 'unchanged'}\n`,
    )
  }
}
