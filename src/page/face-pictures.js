// The pictures of faces: fetched when they are wanted, a few at a time, and again after a 429.
// @ts-check

/** Pictures that are fetched at the same time. The server bounds the requests of a key. */
const AT_ONCE = 4;
/** Times that a picture is asked for. */
const MAX_TRIES = 6;
/** Wait after a 429 that names none, and the longest wait, seconds. */
const WAIT_S = { least: 1, most: 30 };

/** @typedef {{ id: string, thumbnail_url?: string }} Pictured A face. */

/** Object URLs of pictures, by face. */
export class FacePictures {
  #onPicture;
  #apiKey = '';
  /** @type {Map<string, string>} face id → object URL */
  #urls = new Map();
  /** Wanted and not asked for yet, in their order. @type {Map<string, Pictured>} */
  #wanted = new Map();
  /** Asked for: once in the life of the page. @type {Set<string>} */
  #asked = new Set();
  #running = 0;

  /** @param {(faceId: string) => void} onPicture The picture of a face has come. */
  constructor(onPicture) {
    this.#onPicture = onPicture;
  }

  /** @param {string} apiKey */
  set apiKey(apiKey) {
    if (apiKey !== this.#apiKey) {
      this.#asked.clear();
    }
    this.#apiKey = apiKey;
  }

  /** @param {string} faceId */
  urlOf(faceId) {
    return this.#urls.get(faceId);
  }

  /** Fetches the picture of a face; `isFirst`: before all others. @param {Pictured} face */
  want(face, isFirst = false) {
    if (this.#urls.has(face.id) || this.#asked.has(face.id) || !face.thumbnail_url) {
      return;
    }
    this.#wanted.delete(face.id);
    this.#wanted = new Map(
      isFirst ? [[face.id, face], ...this.#wanted] : [...this.#wanted, [face.id, face]],
    );
    this.#next();
  }

  /** The face is no longer in sight. @param {string} faceId */
  unwant(faceId) {
    this.#wanted.delete(faceId);
  }

  /** The picture of a face at rest; null where there is none. @param {Pictured} face */
  async fetch({ thumbnail_url: address }) {
    for (let tries = 1; address; tries++) {
      try {
        const headers = { 'x-service-api-key': this.#apiKey };
        const response = await fetch(address, { headers });
        if (response.ok) {
          return await response.blob();
        }
        if (response.status !== 429 || tries === MAX_TRIES) {
          return null;
        }
        const seconds = Number(response.headers.get('retry-after')) || WAIT_S.least;
        await new Promise((resolve) => {
          setTimeout(resolve, 1000 * Math.min(WAIT_S.most, Math.max(WAIT_S.least, seconds)));
        });
      } catch {
        return null;
      }
    }
    return null;
  }

  #next() {
    const [face] = this.#wanted.values();
    if (!face || this.#running === AT_ONCE) {
      return;
    }
    this.#wanted.delete(face.id);
    this.#asked.add(face.id);
    this.#running++;
    void this.fetch(face).then((picture) => {
      this.#running--;
      if (picture) {
        this.#urls.set(face.id, URL.createObjectURL(picture));
        this.#onPicture(face.id);
      } else {
        this.#asked.delete(face.id); // again, when it comes into sight once more
      }
      this.#next();
    });
  }
}
