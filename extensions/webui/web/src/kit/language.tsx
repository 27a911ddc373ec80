import { chooseLanguage, language } from '../words/language.ts';
import { Button } from './button.tsx';

/** Changes to the other language; its name is in that language. */
export function LanguageButton() {
    const other = language() === 'en' ? 'zh' : 'en';
    return (
        <Button look="quiet" onPress={() => chooseLanguage(other)}>
            <span lang={other}>{other === 'zh' ? '中文' : 'English'}</span>
        </Button>
    );
}
