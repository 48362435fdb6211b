/** Types of kubernetes-schemas.mjs. */

/** The version of Kubernetes, as Helm wants it. */
export const KUBERNETES_VERSION: string;

/** What kubeconform gets as -schema-location; undefined: the schemas are not on this machine. */
export function schemaLocation(): string | undefined;
