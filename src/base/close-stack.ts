// What must be closed at the end, in the reverse order of its opening.

/** Collects close functions while a server is composed, and runs them once. */
export class CloseStack {
  #closers: (() => unknown)[] = [];

  /** Registers the close function of something that was just opened; it may return a promise. */
  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /**
   * Runs all close functions one after another, the last added first. Each runs even when others
   * fail.
   * @throws the first error
   */
  async close(): Promise<void> {
    const closers = this.#closers.toReversed();
    this.#closers = [];
    const errors: unknown[] = [];
    for (const close of closers) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) {
      throw errors[0];
    }
  }
}
