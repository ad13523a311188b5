const ORDER = new Intl.Collator("en", { numeric: true });

/** Compares names as people count: `app2` comes before `app10`. */
export const byNaturalOrder: (one: string, other: string) => number = ORDER.compare;
