// One line of the exposition format, as prom-client's registry takes it.

/** Labels of a series by name. */
export type LabelSet = Readonly<Record<string, string>>;

/** A value with its labels. */
export interface Sample {
  readonly metricName?: string;
  /**
   * prom-client keeps the text of these labels as long as the object lives. So pass the same object
   * at every scrape: writing labels anew is most of the cost of a scrape.
   */
  readonly sharedLabels: LabelSet;
  readonly value: number;
  readonly exemplar?: {
    readonly labelSet: LabelSet;
    readonly value: number;
    readonly timestamp: number;
  };
}

/** @returns adds label `name` to labels; the same object for the same labels and value */
export function labelAdder(name: string): (labels: LabelSet, value: string) => LabelSet {
  const known = new WeakMap<LabelSet, Map<string, LabelSet>>();
  return (labels, value) => {
    const byValue = known.get(labels) ?? new Map<string, LabelSet>();
    known.set(labels, byValue);
    const extended = byValue.get(value) ?? { ...labels, [name]: value };
    byValue.set(value, extended);
    return extended;
  };
}

/** Adds the upper bound of a histogram's bucket. */
export const withBound = labelAdder('le');
