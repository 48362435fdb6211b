// What the endpoint keeps for ICE, for fuzz targets: addresses and expected responses.

/** Keeps what a peer claims; its owner asserts that nothing is left at the end. */
export class IceRegistry {
  readonly expected = new Set<string>();
  readonly claimed = new Set<string>();

  claimAddress(key: string): void {
    this.claimed.add(key);
  }
  releaseAddress(key: string): void {
    this.claimed.delete(key);
  }
  expectResponse(id: string): void {
    this.expected.add(id);
  }
  forgetResponse(id: string): void {
    this.expected.delete(id);
  }
  onAmplificationLimit(): void {
    /* counted elsewhere */
  }
}
