import type { Store } from "../../../src/store/ports.ts";

export type Open = () => Promise<Store>;
