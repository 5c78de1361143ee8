/* Linked with every member of every library: two functions of one name end the build, of which the
 * linker otherwise takes the first it comes across without a word. */
int main(void)
{
    return 0;
}
