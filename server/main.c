#include <stdio.h>
int main(void){puts("ztserve");return 0;}
