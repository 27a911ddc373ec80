/** Which language the pages speak. */
import { setWords } from './t.ts';

const kept = 'portico.language';

/** The language in use: what the user chose, else the browser's when there are words for it, else English. */
export const language = (): 'en' | 'zh' => {
    const wanted = localStorage.getItem(kept) ?? navigator.language;
    return wanted.startsWith('zh') ? 'zh' : 'en';
};

/** Loads the words of the language. Pages are shown after it. */
export async function loadWords(): Promise<void> {
    document.documentElement.lang = language();
    setWords(language() === 'zh' ? (await import('./zh.json')).default : {});
}

/** Changes the language and loads the pages again. */
export function chooseLanguage(chosen: 'en' | 'zh'): void {
    localStorage.setItem(kept, chosen);
    location.reload();
}
