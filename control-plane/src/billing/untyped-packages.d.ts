// Types for packages that have none, or none that fit the module that Node loads.
declare module 'bidi-js' {
  interface EmbeddingLevels {
    /** The levels, one for each UTF-16 code unit; odd ones run from right to left. */
    levels: Uint8Array
  }

  interface Bidi {
    getEmbeddingLevels(text: string): EmbeddingLevels
    /**
     * Returns the indices in printing order.
     * @param end inclusive
     */
    getReorderedIndices(text: string, levels: EmbeddingLevels, start: number, end: number): number[]
    getMirroredCharacter(character: string): string | null
  }

  export default function bidiFactory(): Bidi
}

declare module 'linebreak' {
  interface Break {
    /** The index of the first UTF-16 code unit of the next line. */
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
    /** Registers a font. PDFKit accepts an opened font as well. */
    registerFont(name: string, font: import('fontkit').Font): this
  }
}
