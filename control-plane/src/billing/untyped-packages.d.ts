// Types of what we use of packages that have none, or none that fit the module that Node loads.
declare module 'bidi-js' {
  interface EmbeddingLevels {
    /** One for each UTF-16 code unit; odd ones run from right to left. */
    levels: Uint8Array
  }

  interface Bidi {
    getEmbeddingLevels(text: string): EmbeddingLevels
    /** @param end inclusive */
    getReorderedIndices(text: string, levels: EmbeddingLevels, start: number, end: number): number[]
    getMirroredCharacter(character: string): string | null
  }

  export default function bidiFactory(): Bidi
}

declare module 'linebreak' {
  interface Break {
    /** Index of the first UTF-16 code unit of the next line. */
    position: number
    required: boolean
  }

  export default class LineBreaker {
    constructor(text: string)
    nextBreak(): Break | null
  }
}

declare namespace PDFKit.Mixins {
  interface PDFFont {
    /** PDFKit takes an opened font as well. */
    registerFont(name: string, font: import('fontkit').Font): this
  }
}
